"""What is compared, and on what: methods and their rivals, uncertainties, cases."""

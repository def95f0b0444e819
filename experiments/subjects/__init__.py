"""What is compared, and where: methods and their rivals, uncertainties, cases."""

"""The Prediction record: probability, rationales, evidence; explain, discover, pictures, exports."""
